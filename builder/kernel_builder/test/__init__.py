"""Step 7: packaged variants → receipts: a kernel's own tests, run against every variant that this machine can load."""
