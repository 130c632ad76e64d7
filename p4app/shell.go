package p4app

import "strings"

// WithIP puts commands of net-tools, which the tutorials' hosts begin with, as
// those of iproute2: route add default gw ADDRESS, and arp -s ADDRESS MAC. Others
// stay as they are.
func WithIP(command string) string {
	words := strings.Fields(command)
	dev := ""
	rest := words[:0:0]
	for i := 0; i < len(words); i++ {
		if (words[i] == "-i" || words[i] == "dev") && i+1 < len(words) {
			dev = " dev " + words[i+1]
			i++
			continue
		}
		rest = append(rest, words[i])
	}
	switch {
	case len(rest) == 5 && rest[0] == "route" && rest[1] == "add" && rest[2] == "default" && rest[3] == "gw":
		return "ip route replace default via " + rest[4] + dev
	case len(rest) == 4 && rest[0] == "arp" && rest[1] == "-s":
		return "ip neigh replace " + rest[2] + " lladdr " + rest[3] + " nud permanent" + dev
	case len(rest) > 2 && rest[0] == "ip" && rest[1] == "route" && rest[2] == "add":
		return strings.Replace(command, "route add", "route replace", 1)
	}
	return command
}
