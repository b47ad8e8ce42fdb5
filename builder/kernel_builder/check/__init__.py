"""Step 5: does a built variant keep its promises? Checks return findings; none prints, none repairs."""
