float terms(float y) { return 1 - y / 2 * (1 - y / 12 * (1 - y / 30)); }
