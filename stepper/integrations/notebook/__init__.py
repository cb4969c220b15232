"""A debugger in a notebook: `debugger.widget()`, with the extra `stepper[notebook]`.

    messages of a page --loop_session--> Interpreter, Follower --> what the page shows, as plain data

`loop_session` knows no widget; `loop_widget` hands its data to anywidget; `loop.js` shows them in Jupyter, VS Code,
Colab and marimo.
"""
