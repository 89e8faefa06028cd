extern "C" int area_run();

extern "C" int NAME() { return area_run(); }
