from __future__ import annotations

from routemaster.rtm import main

if __name__ == "__main__":
    main(prog_name="rtm")
