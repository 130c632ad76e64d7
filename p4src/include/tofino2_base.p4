// A part of t2na.p4 in p4c, which programs that p4c has written out include.
#include "t2na.p4"
