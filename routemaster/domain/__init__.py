"""Values and rules. No I/O, no clock, no environment; of our own code it imports only `errors`."""
