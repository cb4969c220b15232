"""The body of a loop as equations over the iterations: `h_t = tanh(W x_t + U h_{t−1} + b)`."""
