"""Delivery and health reports over what the bus exports; imports routemaster.domain at most."""
