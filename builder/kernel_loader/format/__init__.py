"""The grammar of the Hub kernel format: values and their spellings, without input or output."""
