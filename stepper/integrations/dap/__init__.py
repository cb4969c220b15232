"""The Debug Adapter Protocol, as VS Code, Neovim, Emacs and other clients speak it: a run of a model as a program.

    bytes --framing--> a message --messages--> a request --adapter--> Debugger, Interpreter, check

The source is the listing of the model, a stack frame is a level of loops, its variables are the values there.
"""
