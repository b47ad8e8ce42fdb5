"""Names that a torch release's libraries really export, read out of its wheel without downloading it.

A wheel holds libraries of hundreds of megabytes. Their symbol tables need the first and the last few: ``tails``
inflates the end of a packed file whose beginning is not there, ``libraries`` finds the tables, ``tables`` keeps them.
"""
