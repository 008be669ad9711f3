"""The whole suite: compiled code is not kept on disk, so that no test finds what another has compiled.

Tests of the disk level switch it on in a folder of their own.
"""

import os

os.environ["JITDIALECTS_DISK_CAP"] = "0"
