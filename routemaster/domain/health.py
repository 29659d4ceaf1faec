"""What a delivery does to its subscriber's health points."""

from __future__ import annotations

REWARD, DAMAGE = 1, 2
