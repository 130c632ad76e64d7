// twochoice, the program of spines: one path leads down to each leaf.
#include <core.p4>
#include <v1model.p4>

struct local {}

#include "common.p4"

control down(inout packet k, inout local l, inout standard_metadata_t s) {
    action drop() {
        mark_to_drop(s);
    }

    action send(bit<9> port, bit<48> mac, bit<48> own) {
        s.egress_spec = port;
        k.e.to = mac;
        k.e.from = own;
        k.i.hops = k.i.hops - 1;
    }

    table leaf {
        key = { k.i.to: lpm; }
        actions = { send; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (k.i.isValid() && k.i.hops > 1) {
            leaf.apply();
        } else {
            drop();
        }
    }
}

control nothing(inout packet k, inout local l, inout standard_metadata_t s) {
    apply {}
}

V1Switch(read(), trust(), down(), nothing(), sum(), write()) main;
