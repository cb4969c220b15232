"""A run in fewer bits: which operation in which iteration cannot bear it, and what has to stay in f32.

narrowing.py   ways to compute in fewer bits, weights in 8 bits, runs in fewer bits, both runs side by side
rules.py       the rules, and the findings that come of it
checking.py    the command's check, and the model with the operations marked that OpenVINO is to leave in f32
"""
