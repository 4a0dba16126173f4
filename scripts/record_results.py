"""Record every experiment at paper size, or the named ones: the same as python -m ranklib reproduce [NAME ...]"""

import sys

from ranklib.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", *sys.argv[1:]]))
