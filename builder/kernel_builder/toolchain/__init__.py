"""What plans are compiled with: device compilers, torch headers, the host compiler and the floor."""
