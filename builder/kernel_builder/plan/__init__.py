"""Step 2: kernels × matrix × selection → Plan. Pure: no device, network or toolkit is asked."""
