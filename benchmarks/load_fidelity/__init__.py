"""How faithfully load generators send what they are told: ours, AIPerf and vllm bench serve.

    python -m benchmarks.load_fidelity [--aiperf EXECUTABLE] [--vllm EXECUTABLE]

All against one server that keeps its own book of arrivals and first tokens, so that no tool is
judged by its own clock alone.
"""
