#!/bin/sh
# From observations to a better balancer, all in virtual time: watch the queues
# of a network under ECMP, fit the congestion index to them, generate the program
# with it, and compare that with the paper's index and with ECMP.
#
#     examples/loop.sh [FOLDER]
set -eu
p4lb=${P4LB:-bin/p4lb}
out=${1:-build/loop}
mkdir -p "$out"

# observe: traffic, occupancy and dequeue interval of all ports between switches
"$p4lb" lab --scheme ecmp --workload websearch --load 0.7 --duration 8s --seeds 1 --engine native \
	--observe "$out/observations.csv" --every 5ms -o "$out/observed"

# fit: the traffic as a polynomial in the other two, in integers that a switch can compute
"$p4lb" fit --data "$out/observations.csv" --degree 3 --monotone -o "$out/model.json"

# gen: the program, to read or to load into a switch
"$p4lb" gen --scheme qall-poly3 --coeffs "$out/model.json" -o "$out"

# lab: is it better?
"$p4lb" lab --scheme qall-poly3 --coeffs "$out/model.json" --vs qall-poly3,qall-pkt,ecmp \
	--workload websearch --load 0.7 --duration 1s --seeds 3 -o "$out/compared"
