"""Plans what is built: kernels × matrix × selection become a Plan. Pure: no device, network or toolkit is asked."""
