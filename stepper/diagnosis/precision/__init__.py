"""A run in fewer bits: which operation in which iteration cannot bear it, and what has to stay in f32.

narrowing.py   the ways to compute in fewer bits; the partner that does so, with operations left in f32
weights.py     the constants that are weights, and what 8 bits make of them
losses.py      how far the outputs of two runs are apart
trials.py      runs in fewer bits, each with another set left in f32, bounded by the plain run
smallest.py    the smallest set with which something holds
side_by_side.py  the plain run and the narrow one side by side: where they part
rules.py       the rules, and the findings that come of it
marks.py       the model with the operations marked that OpenVINO is to leave in f32
"""
