from __future__ import annotations

from routemaster.cli import main

if __name__ == "__main__":
    main(prog_name="routemaster")
