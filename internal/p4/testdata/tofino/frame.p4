// The blocks that a program about one feature leaves alone. The program
// declares headers_t, whose first header is i, meta_t and the ingress control I,
// includes this file last and names the blocks of its own in macros. T2NA wants
// all parameters of controls, TNA lets them be left out.

#ifndef PARSER
#define PARSER ParseInput
parser ParseInput(packet_in b, out headers_t h, out meta_t m, out ingress_intrinsic_metadata_t ig) {
    state start {
        b.extract(ig);
        b.advance(PORT_METADATA_SIZE);
        b.extract(h.i);
        transition accept;
    }
}
#endif

#ifndef DEPARSER
#define DEPARSER EmitAll
control EmitAll(packet_out b, inout headers_t h, in meta_t m, in ingress_intrinsic_metadata_for_deparser_t d) {
    apply {
        b.emit(h);
    }
}
#endif

struct nothing_t {}

#ifndef EGRESS
#define EGRESS Pass
#define EGRESS_PARSER ParseNothing
#define EGRESS_DEPARSER EmitNothing
parser ParseNothing(packet_in b, out nothing_t h, out nothing_t m, out egress_intrinsic_metadata_t eg) {
    state start {
        b.extract(eg);
        transition accept;
    }
}

control Pass(inout nothing_t h, inout nothing_t m, in egress_intrinsic_metadata_t eg,
             in egress_intrinsic_metadata_from_parser_t p,
             inout egress_intrinsic_metadata_for_deparser_t d,
             inout egress_intrinsic_metadata_for_output_port_t o) {
    apply {}
}

control EmitNothing(packet_out b, inout nothing_t h, in nothing_t m, in egress_intrinsic_metadata_for_deparser_t d) {
    apply {}
}
#endif

Pipeline(PARSER(), I(), DEPARSER(), EGRESS_PARSER(), EGRESS(), EGRESS_DEPARSER()) pipe;

Switch(pipe) main;
