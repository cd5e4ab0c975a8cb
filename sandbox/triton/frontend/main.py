"""The frontend's entry: `python3 …/openai_frontend/main.py --model-repository …`."""

import sys

from sandbox.openai_frontend.main import main

sys.exit(main())
