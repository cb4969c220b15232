"""A run in fewer bits: which operation in which iteration cannot bear it, and what has to stay in f32.

narrowing.py   ways to compute in fewer bits, weights in 8 bits, runs in fewer bits, both runs side by side
checking.py    the rules, the command's check, and the model with the operations marked that are to stay in f32
"""
