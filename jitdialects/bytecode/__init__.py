"""What a program is: instructions, text, bytes and the checks before anything runs.

Nothing here executes or compiles. Start with `program` (data), `operators` (the table of operators) and
`assembler` (the text form, with an example); `builder` makes programs from Python, `verifier` says what
a valid one is, `binary` is the `.jbc` file.
"""
