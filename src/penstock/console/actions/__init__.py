"""Every change that the console makes, one function each: the role is asked, the work is done, the audit log is told.

All go through `PageContext.act`. A page calls these and nothing else to change anything.
"""
