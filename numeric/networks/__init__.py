"""The thin simulator: one network, its readouts, what is measured, and one runner.

``samples`` draws inputs and labels block by block, ``layer`` holds rows and the directions that
matter, ``network`` says what is trained and takes its gradient steps, ``readout``, ``ridge`` and
``convex`` fit second layers, ``measure`` says what is seen of a trained network (``directions``,
``spectra``, ``bulk``, ``gradient`` and ``neuron_gradients`` see more), and ``run`` repeats it over
seeds and keeps what has finished. No formula of a theory stands here: activations, teachers, label
laws and losses come as functions from the symbolic side.
"""
