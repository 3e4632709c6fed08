"""`drift bench`: the paper's tables and figures, each from many small runs that are kept and never run twice."""
