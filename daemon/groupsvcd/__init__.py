"""The daemon of a node.

``core`` is the whole protocol as a pure machine, ``io`` everything that blocks or fails and drives it,
``observe`` what people and checkers can see of it. ``python -m groupsvcd`` starts one.
"""
