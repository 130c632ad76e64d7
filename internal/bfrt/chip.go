package bfrt

import (
	"strconv"
	"strings"
)

// ChipSchema returns the schema of the tables that every chip has, whatever its
// program: the device, ports, mirror sessions, the replication engine, the packet
// generator and the traffic manager. The SDE keeps them in files of its own. second selects Tofino 2.
func ChipSchema(second bool) *Schema {
	s := &Schema{Version: "1.0.0"}
	family := "tf1"
	if second {
		family = "tf2"
	}
	s.Tables = append(s.Tables, deviceTables(family)...)
	s.Tables = append(s.Tables, portTables(second)...)
	s.Tables = append(s.Tables, mirrorTable(second))
	s.Tables = append(s.Tables, replicationTables(second)...)
	s.Tables = append(s.Tables, generatorTables(family, second)...)
	s.Tables = append(s.Tables, managerTables(family, second)...)
	return s
}

// Annotations of fields that hold ports.
var (
	devPort  = Annotation{Name: "$bfrt_port_type_class", Value: "dev_port"}
	portName = Annotation{Name: "$bfrt_port_type_class", Value: "port_name"}
)

// chipTable returns a table of a chip. A string describes a field by its name and
// type. A * after the type makes the field an array. A ! before the name makes the
// field mandatory, and a - makes it read-only. Fields are numbered from 1.
func chipTable(name string, id uint32, kind string, size int64, first uint32, key []string, data ...string) *Table {
	t := NewTable(name, id, kind, size)
	for i, k := range key {
		name, typ, _ := strings.Cut(k, " ")
		t.AddKey(uint32(i+1), name, true, "Exact", plainType(typ), notesOf(name)...)
	}
	for i, d := range data {
		t.Data = append(t.Data, chipField(first+uint32(i), d))
	}
	return t
}

func chipField(id uint32, text string) *Data {
	name, typ, _ := strings.Cut(text, " ")
	d := &Data{Mandatory: strings.HasPrefix(name, "!"), ReadOnly: strings.HasPrefix(name, "-")}
	name = strings.TrimLeft(name, "!-")
	typ, many := strings.CutSuffix(typ, "*")
	d.Singleton = NewField(id, name, plainType(typ), notesOf(name)...)
	d.Singleton.Repeated = many
	return d
}

func notesOf(name string) []Annotation {
	switch name {
	case "$DEV_PORT", "dev_port", "$MULTICAST_BACKUP_PORT":
		return []Annotation{devPort}
	case "$PORT_NAME":
		return []Annotation{portName}
	}
	return []Annotation{}
}

// plainType parses a type: a name, or a|b|c for a choice of strings, and =x for the
// default.
func plainType(s string) *Type {
	s, preset, has := strings.Cut(s, "=")
	t := Plain(s)
	if strings.Contains(s, "|") {
		t = OneOf(strings.Split(s, "|")...)
	}
	if width, ok := strings.CutPrefix(s, "bytes"); ok {
		n, _ := strconv.Atoi(width) // it is written below
		t = Bytes(n)
	}
	if has {
		switch {
		case preset == "true" || preset == "false":
			t.Default = preset == "true"
		case t.Type == "string":
			t.Default = preset
		default:
			t.Default, _ = strconv.Atoi(preset) // it is written below
		}
	}
	return t
}

func deviceTables(family string) []*Table {
	return []*Table{
		chipTable(family+".dev.device_configuration", 0xff060001, "DevConfigure", 1, 1, nil,
			"-sku string=UNKNOWN", "-num_pipes uint32", "-num_stages uint32", "-num_max_ports uint32", "-num_front_ports uint32", "-pcie_cpu_port uint32",
			"-eth_cpu_port_list uint32*", "-internal_port_list uint32*", "-external_port_list uint32*", "-recirc_port_list uint32*",
			"-intr_based_link_monitoring bool", "flow_learn_intr_mode bool=false", "lrt_dr_timeout_usec uint32=0", "flow_learn_timeout_usec uint32=500",
			"inactive_node_delete bool=false", "selector_member_order bool=false"),
	}
}

// Choices of a port's fields.
const (
	speeds    = "BF_SPEED_NONE|BF_SPEED_1G|BF_SPEED_10G|BF_SPEED_25G|BF_SPEED_40G|BF_SPEED_40G_NB|BF_SPEED_40G_NON_BREAKABLE|BF_SPEED_50G|BF_SPEED_100G|BF_SPEED_200G|BF_SPEED_400G"
	fecs      = "BF_FEC_TYP_NONE|BF_FEC_TYP_FIRECODE|BF_FEC_TYP_REED_SOLOMON|BF_FEC_TYP_FC|BF_FEC_TYP_RS"
	loopbacks = "BF_LPBK_NONE|BF_LPBK_MAC_NEAR|BF_LPBK_MAC_FAR|BF_LPBK_PCS_NEAR|BF_LPBK_SERDES_NEAR|BF_LPBK_SERDES_FAR"
)

func portTables(second bool) []*Table {
	loopback := loopbacks
	if second {
		loopback += "|BF_LPBK_PIPE"
	}
	port := chipTable("$PORT", 0xff010001, "PortConfigure", 256, 1, []string{"$DEV_PORT uint32"},
		"$SPEED "+speeds, "$FEC "+fecs, "$N_LANES uint32=1", "$PORT_ENABLE bool=false",
		"$AUTO_NEGOTIATION PM_AN_DEFAULT|PM_AN_FORCE_ENABLE|PM_AN_FORCE_DISABLE=PM_AN_DEFAULT", "$LOOPBACK_MODE "+loopback+"=BF_LPBK_NONE",
		"$TX_MTU uint32=10240", "$RX_MTU uint32=10240", "$TX_PFC_EN_MAP uint32=0", "$RX_PFC_EN_MAP uint32=0",
		"$TX_PAUSE_FRAME_EN bool=false", "$RX_PAUSE_FRAME_EN bool=false", "$CUT_THROUGH_EN bool=false",
		"$PORT_DIR PM_PORT_DIR_DEFAULT|PM_PORT_DIR_TX_ONLY|PM_PORT_DIR_RX_ONLY=PM_PORT_DIR_DEFAULT",
		"-$MEDIA_TYPE BF_MEDIA_TYPE_COPPER|BF_MEDIA_TYPE_OPTICAL|BF_MEDIA_TYPE_UNKNOWN=BF_MEDIA_TYPE_UNKNOWN",
		"$SDS_TX_ATTN uint32=0", "$SDS_TX_PRE int32=0", "$SDS_TX_PRE2 int32=0", "$SDS_TX_POST int32=0", "$SDS_TX_POST2 int32=0",
		"-$IS_VALID bool=true", "-$IS_INTERNAL bool=false", "-$CONN_ID uint32=0", "-$CHNL_ID uint32=0", "-$PORT_UP bool=false", "-$PORT_NAME string",
		"$RX_PRSR_PRI_THRESH uint32=0")
	port.Attributes = []string{"port_status_notif_cb"}
	stat := chipTable("$PORT_STAT", 0xff010002, "PortStat", 256, 1, []string{"$DEV_PORT uint32"}, portCounters()...)
	stat.Attributes = []string{"poll_intvl_ms"}
	return []*Table{
		port, stat,
		chipTable("$PORT_HDL_INFO", 0xff010003, "PortHdlInfo", 256, 1, []string{"$CONN_ID uint32=0", "$CHNL_ID uint32=0"}, "-$DEV_PORT uint32"),
		chipTable("$PORT_STR_INFO", 0xff010005, "PortStrInfo", 256, 1, []string{"$PORT_NAME string"}, "-$DEV_PORT uint32"),
	}
}

// portCounters returns the names of the port counters that the switch has, at their
// places in the list of the chip's MAC, which has ninety more.
func portCounters() []string {
	names := strings.Fields(`FramesReceivedOK FramesReceivedAll FramesReceivedwithFCSError FrameswithanyError
		OctetsReceivedinGoodFrames OctetsReceived FramesReceivedwithUnicastAddresses FramesReceivedwithMulticastAddresses
		FramesReceivedwithBroadcastAddresses FramesReceivedoftypePAUSE FramesReceivedwithLengthError FramesReceivedUndersized
		FramesReceivedOversized FragmentsReceived JabberReceived PriorityPauseFrames CRCErrorStomped FrameTooLong RxVLANFramesGood
		FramesDroppedBufferFull FramesReceivedLength_lt_64 FramesReceivedLength_eq_64 FramesReceivedLength_65_127
		FramesReceivedLength_128_255 FramesReceivedLength_256_511 FramesReceivedLength_512_1023 FramesReceivedLength_1024_1518
		FramesReceivedLength_1519_2047 FramesReceivedLength_2048_4095 FramesReceivedLength_4096_8191 FramesReceivedLength_8192_9215
		FramesReceivedLength_9216 FramesTransmittedOK FramesTransmittedAll FramesTransmittedwithError OctetsTransmittedwithouterror
		OctetsTransmittedTotal`)
	for i, n := range names {
		names[i] = "$" + n + " uint64=0"
	}
	return names
}

func mirrorTable(second bool) *Table {
	size, first := int64(1024), uint32(5)
	if second {
		size, first = 256, 6
	}
	data := []string{"$session_enable bool"}
	if second {
		data = append(data, "$session_priority bool", "$hash_cfg_flag bool", "$hash_cfg_flag_p bool", "$icos_cfg_flag bool",
			"$dod_cfg_flag bool", "$c2c_cfg_flag bool", "$mc_cfg_flag bool", "$epipe_cfg_flag bool")
	}
	data = append(data, "$direction INGRESS|EGRESS|BOTH", "$ucast_egress_port uint32", "$ucast_egress_port_valid bool", "$egress_port_queue uint32",
		"$ingress_cos uint32", "$packet_color GREEN|YELLOW|RED", "$level1_mcast_hash uint32", "$level2_mcast_hash uint32",
		"$mcast_grp_a uint16", "$mcast_grp_a_valid bool", "$mcast_grp_b uint16", "$mcast_grp_b_valid bool",
		"$mcast_l1_xid uint16", "$mcast_l2_xid uint16", "$mcast_rid uint16", "$icos_for_copy_to_cpu uint32", "$copy_to_cpu bool", "$max_pkt_len uint16")
	t := chipTable("$mirror.cfg", 0xff040001, "MirrorCfg", size, first, []string{"$sid uint16"}, data...)
	coalescing := &ActionSpec{ID: 1, Name: "$coalescing", Annotations: []Annotation{}}
	parts := []string{"$internal_header bytes128", "$internal_header_length uint32", "$timeout_usec uint32", "$extract_len uint32"}
	if second {
		parts = append(parts, "$session_coal_mode bool")
	}
	for i, p := range parts {
		name, typ, _ := strings.Cut(p, " ")
		coalescing.Data = append(coalescing.Data, Param(uint32(i+1), name, false, plainType(typ)))
	}
	t.ActionSpecs = &[]*ActionSpec{coalescing, {ID: 2, Name: "$normal", Annotations: []Annotation{}, Data: []*Field{}}}
	return t
}

func replicationTables(second bool) []*Table {
	lags := int64(255)
	if second {
		lags = 256
	}
	group := chipTable("$pre.mgid", 0xff020001, "PreMgid", 1<<16, 1, []string{"$MGID uint16"},
		"$MULTICAST_NODE_ID uint32*", "$MULTICAST_NODE_L1_XID_VALID bool*", "$MULTICAST_NODE_L1_XID uint16*",
		"$MULTICAST_ECMP_ID uint32*", "$MULTICAST_ECMP_L1_XID_VALID bool*", "$MULTICAST_ECMP_L1_XID uint16*")
	group.Attributes = []string{"pre_device_config"}
	return []*Table{
		group,
		chipTable("$pre.node", 0xff020002, "PreNode", 1<<24, 1, []string{"$MULTICAST_NODE_ID uint32"}, "!$MULTICAST_RID uint16", "!$MULTICAST_LAG_ID uint8*", "!$DEV_PORT uint32*"),
		chipTable("$pre.ecmp", 0xff020003, "PreEcmp", 1<<24, 1, []string{"$MULTICAST_ECMP_ID uint32"}, "!$MULTICAST_NODE_ID uint32*"),
		chipTable("$pre.lag", 0xff020004, "PreLag", lags, 1, []string{"$MULTICAST_LAG_ID uint8"}, "$DEV_PORT uint32*", "$MULTICAST_LAG_REMOTE_MSB_COUNT uint32=0", "$MULTICAST_LAG_REMOTE_LSB_COUNT uint32=0"),
		chipTable("$pre.prune", 0xff020005, "PrePrune", 288, 1, []string{"$MULTICAST_L2_XID uint16"}, "!$DEV_PORT uint32*"),
		chipTable("$pre.port", 0xff020006, "PrePort", 288, 1, []string{"$DEV_PORT uint32"}, "$MULTICAST_BACKUP_PORT uint32", "$MULTICAST_FORWARD_STATE bool", "$MULTICAST_CLEAR_FAST_FAILOVER bool", "$COPY_TO_CPU_PORT_ENABLE bool"),
	}
}

// generatorTables returns the tables of the packet generator. Tofino 2 has two more, for
// the ports that trigger an application, which the switch does not have.
func generatorTables(family string, second bool) []*Table {
	name := func(n string) string { return family + ".pktgen." + n }
	apps, short := int64(8), "uint16"
	if second {
		apps, short = 16, "bytes16"
	}
	data := []string{"app_enable bool", "pkt_len " + short, "pkt_buffer_offset " + short, "pipe_local_source_port uint32", "increment_source_port bool",
		"batch_count_cfg " + short, "packets_per_batch_cfg " + short, "ibg uint32", "ibg_jitter uint32", "ipg uint32", "ipg_jitter uint32",
		"batch_counter uint64", "pkt_counter uint64", "trigger_counter uint64"}
	timer := Param(1, "timer_nanosec", false, Plain("uint32"))
	pattern := func(t *Type) []*Field {
		return []*Field{Param(4, "pattern_value", false, t), Param(5, "pattern_mask", false, t)}
	}
	down, recirculated := []*Field{}, pattern(Plain("uint32"))
	if second {
		data = append(data, "offset_len_from_recir_pkt_enable bool", "source_port_wrap_max bytes8", "assigned_chnl_id bytes8")
		down, recirculated = []*Field{Param(3, "port_mask_sel", false, Plain("uint32"))}, pattern(Bytes(128))
	}
	app := chipTable(name("app_cfg"), 0xff030002, "PktgenAppCfg", apps, 12, []string{"app_id uint32"}, data...)
	actions := []*ActionSpec{
		{ID: 1, Name: "trigger_timer_one_shot", Data: []*Field{timer}},
		{ID: 2, Name: "trigger_timer_periodic", Data: []*Field{timer}},
		{ID: 3, Name: "trigger_port_down", Data: down},
		{ID: 4, Name: "trigger_recirc_pattern", Data: recirculated},
	}
	if second {
		actions = append(actions, &ActionSpec{ID: 5, Name: "trigger_dprsr", Data: pattern(Bytes(128))}, &ActionSpec{ID: 6, Name: "trigger_pfc", Data: []*Field{
			Param(8, "pfc_header", false, Bytes(128)), Param(9, "timer_enable", false, Plain("bool")), Param(10, "timer", false, Bytes(16)), Param(11, "max_pfc_events", false, Bytes(10)),
		}})
	}
	for _, a := range actions {
		a.Annotations = []Annotation{}
	}
	app.ActionSpecs = &actions
	return []*Table{
		chipTable(name("port_cfg"), 0xff030001, "PktgenPortCfg", 256, 1, []string{"dev_port uint32"},
			"recirculation_enable bool", "pktgen_enable bool", "pattern_matching_enable bool", "clear_port_down_enable bool"),
		app,
		chipTable(name("pkt_buffer"), 0xff030003, "PktgenPktBufferCfg", 1024, 1, []string{"pkt_buffer_offset uint32", "pkt_buffer_size uint32"}, "buffer bytes8*"),
	}
}

// managerTables returns the tables of the traffic manager that affect the switch: the
// queues of ports, their rates and their lengths.
func managerTables(family string, second bool) []*Table {
	queues := int64(2304)
	if second {
		queues = 4608
	}
	ports := []string{"dev_port uint32"}
	queue := []string{"pg_id uint8", "pg_queue uint8"}
	name := func(n string) string { return family + ".tm." + n }
	buffer := chipTable(name("queue.buffer"), 0xff050024, "TmQueueBuffer", queues, 1, queue, "guaranteed_cells uint32=0", "hysteresis_cells uint32=0", "tail_drop_enable bool=true")
	buffer.ActionSpecs = &[]*ActionSpec{
		{ID: 1, Name: "shared_pool", Annotations: []Annotation{}, Data: []*Field{
			Param(4, "pool_id", false, OneOf("EG_APP_POOL_0", "EG_APP_POOL_1", "EG_APP_POOL_2", "EG_APP_POOL_3")),
			Param(5, "pool_max_cells", false, Plain("uint32")),
			Param(6, "dynamic_baf", false, OneOf("1.5%", "3%", "6%", "11%", "20%", "33%", "50%", "66%", "80%", "DISABLE")),
		}},
		{ID: 2, Name: "buffer_only", Annotations: []Annotation{}, Data: []*Field{}},
	}
	sched := chipTable(name("queue.sched_cfg"), 0xff050025, "TmQueueSchedCfg", queues, 1, queue,
		"min_priority LOW|0|1|2|3|4|5|6|7|HIGH=LOW", "min_rate_enable bool=false", "dwrr_weight uint16=1023", "max_priority LOW|0|1|2|3|4|5|6|7|HIGH=LOW", "max_rate_enable bool=false")
	if second {
		sched.Data = append(sched.Data, chipField(6, "advanced_flow_control CREDIT|XOFF=CREDIT"), chipField(7, "scheduling_enable bool=true"))
	} else {
		sched.Data = append(sched.Data, chipField(6, "scheduling_enable bool=true"))
	}
	port := chipTable(name("port.sched_cfg"), 0xff050016, "TmPortSchedCfg", 288, 1, ports, "max_rate_enable bool=false")
	port.Data = append(port.Data, chipField(map[bool]uint32{false: 2, true: 4}[second], "-scheduling_speed "+speeds+"=BF_SPEED_100G"))
	return []*Table{
		chipTable(name("port.cfg"), 0xff050010, "TmPortCfg", 288, 1, ports, "-pg_id uint8", "-pg_port_nr uint8", "-port_queues_count uint8", "-ingress_qid_map uint8*", "-egress_qid_queues uint8*"),
		port,
		chipTable(name("port.sched_shaping"), 0xff050017, "TmPortSchedShaping", 288, 1, ports, "unit PPS|BPS=BPS", "provisioning UPPER|LOWER|MIN_ERROR=UPPER", "max_rate uint32=0", "max_burst_size uint32=0"),
		chipTable(name("queue.map"), 0xff050022, "TmQueueMap", queues, 1, queue, "-dev_port uint32", "-queue_nr uint8"),
		buffer, sched,
		chipTable(name("queue.sched_shaping"), 0xff050026, "TmQueueSchedShaping", queues, 1, queue, "unit PPS|BPS=BPS", "provisioning UPPER|LOWER|MIN_ERROR=UPPER",
			"min_rate uint32=0", "min_burst_size uint32=0", "max_rate uint32=0", "max_burst_size uint32=0"),
	}
}
