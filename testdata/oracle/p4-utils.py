"""Records what p4-utils reads from a topology.json.

Usage: P4LB_GRAPH=t.json go test ./internal/network/p4app -run TestGraph
       python3 p4-utils.py P4UTILS/p4utils/utils/topology.py t.json > p4-utils.tsv

topology.py is of github.com/nsg-ethz/p4-utils at 83b118b; it needs networkx.
"""
import hashlib
import importlib.util
import json
import sys

import networkx

spec = importlib.util.spec_from_file_location("topology", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
text = open(sys.argv[2]).read()
topo = module.NetworkGraph(networkx.node_link_graph(json.loads(text)))
older = module.NetworkGraph(networkx.node_link_graph(json.loads(text), edges="links"))
assert topo.get_intfs() == older.get_intfs()


def say(query, *answer):
    print(query + "\t" + " ".join(str(a) for a in answer))


print("# p4-utils 83b118b, networkx " + networkx.__version__)
say("sha256", hashlib.sha256(text.encode()).hexdigest())
say("switches", *sorted(topo.get_p4rtswitches()))
say("hosts", *sorted(topo.get_hosts()))
for name in ("l1", "s2"):
    say("id " + name, topo.get_p4switch_id(name))
    say("grpc " + name, topo.get_grpc_port(name))
say("thrift l1", topo.get_thrift_port("l1"))
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
say("neighbour l2 9", topo.port_to_node("l2", 9))
say("hosts of l2", *topo.get_hosts_connected_to("l2"))
say("paths h1 h2", *sorted("-".join(p) for p in topo.get_shortest_paths_between_nodes("h1", "h2")))
say("subnet l2 h2", topo.subnet("h2", "l2"))
