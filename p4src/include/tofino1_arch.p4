// A part of tna.p4 in p4c, which programs that p4c has written out include.
#include "tna.p4"
