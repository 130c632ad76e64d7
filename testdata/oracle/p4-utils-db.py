"""Records what the older p4-utils reads from a topology.db.

Usage: P4LB_DATABASE=t.db go test ./internal/network/p4app -run TestDatabase
       python3 p4-utils-db.py P4UTILS/p4utils/utils/topology.py t.db > p4-utils-db.tsv

topology.py is of github.com/nsg-ethz/p4-utils at 1a71ac1, the last commit for Python 2;
it needs networkx. The replacements below are the differences of Python 3 and of
networkx 2.4.
"""
import hashlib
import sys
import types

import networkx

p4utils, logger = types.ModuleType("p4utils"), types.ModuleType("p4utils.logger")
p4utils.NodeDoesNotExist = p4utils.InvalidHostIP = KeyError
logger.log = None
sys.modules.update({"p4utils": p4utils, "p4utils.logger": logger})
source = open(sys.argv[1]).read()
for old, new in (("iteritems", "items"), ("self.node[", "self.nodes["), ("in self.node ", "in self.nodes "), ("self.node:", "self.nodes:"),
                 ('["interfaces_to_node"].keys()[0]', '["interfaces_to_node"].__iter__().__next__()')):
    source = source.replace(old, new)
module = {"__name__": "topology"}
exec(compile(source, sys.argv[1], "exec"), module)
topo = module["Topology"](db=sys.argv[2])


def say(query, *answer):
    print(query + "\t" + " ".join(str(a) for a in answer))


print("# p4-utils 1a71ac1, networkx " + networkx.__version__)
say("sha256", hashlib.sha256(open(sys.argv[2], "rb").read()).hexdigest())
say("switches", *sorted(topo.get_p4switches()))
say("hosts", *sorted(topo.get_hosts()))
say("id s2", topo.get_p4switch_id("s2"))
say("thrift l1", topo.get_thrift_ip("l1"), topo.get_thrift_port("l1"))
say("cpu s1", topo.get_cpu_port_index("s1"))
say("ip h2", topo.get_host_ip("h2"))
say("mac h1", topo.get_host_mac("h1"))
say("name 10.0.1.1", topo.get_host_name("10.0.1.1"))
say("gateway h1", topo.get_host_gateway_name("h1"))
for a, b in (("l1", "h1"), ("l2", "s2"), ("s2", "l2")):
    say("port %s %s" % (a, b), topo.node_to_node_port_num(a, b))
say("mac l2 s2", topo.node_to_node_mac("l2", "s2"))
for b in ("s1", "s2"):
    say("bw l1 " + b, topo.node_to_node_interface_bw("l1", b))
say("hosts of l2", *topo.get_hosts_connected_to("l2"))
say("switches of l2", *sorted(topo.get_switches_connected_to("l2")))
say("paths h1 h2", *sorted("-".join(p) for p in topo.get_shortest_paths_between_nodes("h1", "h2")))
say("subnet h2 l2", topo.subnet("h2", "l2"))
