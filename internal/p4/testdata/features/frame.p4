// The blocks that a program about one feature leaves alone. The program
// declares headers_t, meta_t and the ingress control I, includes this file last
// and names the blocks of its own in macros.

#ifndef PARSER
#define PARSER ParseInput
parser ParseInput(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    state start {
        b.extract(h.i);
        transition accept;
    }
}
#endif

#ifndef VERIFY
#define VERIFY NoVerify
control NoVerify(inout headers_t h, inout meta_t m) {
    apply {}
}
#endif

#ifndef EGRESS
#define EGRESS NoEgress
control NoEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t sm) {
    apply {}
}
#endif

#ifndef UPDATE
#define UPDATE NoUpdate
control NoUpdate(inout headers_t h, inout meta_t m) {
    apply {}
}
#endif

#ifndef DEPARSER
#define DEPARSER EmitAll
control EmitAll(packet_out b, in headers_t h) {
    apply {
        b.emit(h);
    }
}
#endif

V1Switch(PARSER(), VERIFY(), I(), EGRESS(), UPDATE(), DEPARSER()) main;
