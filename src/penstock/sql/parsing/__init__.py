"""A text becomes statements: `parser.parse(text)` gives them in order, `statements` has their forms. SyntaxRefused
says the place and what
was expected. Names are as ksqlDB takes them: in upper case unless they are quoted with backticks."""
