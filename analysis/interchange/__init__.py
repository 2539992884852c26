"""Results of other load generators beside ours, and ours for their tools.

python -m analysis.interchange export RUN                      # for AIPerf's and vLLM's tools
python -m analysis.interchange combine OUT NAME=FILE NAME=RUN  # one table of all of them
"""
