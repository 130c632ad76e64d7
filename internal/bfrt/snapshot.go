package bfrt

// A SnapshotOf describes the snapshot of a gress by the fields of its control.
type SnapshotOf struct {
	Pipe, Gress string
	Hash        uint32
	Fields      []SnapshotField
	Stages      int
	// Second is true for Tofino 2, which reports more fields.
	Second bool
}

// A SnapshotField is a field of the pipe's vector.
type SnapshotField struct {
	ID    uint32
	Name  string
	Width int
}

// AddSnapshot adds the tables of a snapshot. Both gresses share the table cfg.
func (s *Schema) AddSnapshot(of SnapshotOf) {
	base := of.Pipe + ".snapshot."
	cfg := s.Table(base + "cfg")
	if cfg == nil {
		cfg = NewTable(base+"cfg", ID(snapshot, of.Hash), "SnapshotCfg", int64(of.Stages))
		cfg.AddKey(snapshotStartStage, "start_stage", false, "Exact", Plain("uint32").With(0))
		cfg.AddKey(snapshotEndStage, "end_stage", false, "Exact", Plain("uint32").With(of.Stages-1))
		cfg.Data = append(cfg.Data,
			Optional(NewField(snapshotTimerEnable, "timer_enable", Plain("bool").With(false))),
			Optional(NewField(snapshotTimerValue, "timer_value_usecs", Plain("uint32"))),
			Optional(NewField(snapshotIngressMode, "ingress_trigger_mode", OneOf("INGRESS", "GHOST", "INGRESS_GHOST", "ANY").With("INGRESS"))),
			Mandatory(NewField(snapshotThread, "thread", OneOf("INGRESS", "EGRESS", "ALL"))),
			ReadOnly(NewField(snapshotIngressCapture, "ingress_capture", Plain("uint32")).Many()),
			ReadOnly(NewField(snapshotEgressCapture, "egress_capture", Plain("uint32")).Many()),
			ReadOnly(NewField(snapshotGhostCapture, "ghost_capture", Plain("uint32")).Many()),
		)
		s.Tables = append(s.Tables, cfg)
	}
	trigger := of.trigger(base)
	cfg.Needs(trigger.ID)
	liveness := NewTable(base+of.Gress+"_liveness", ID(snapshotLiveness, of.Hash), "SnapshotLiveness", 0)
	liveness.AddKey(snapshotLivenessField, "field_name", true, "Exact", Plain("string"))
	liveness.Data = append(liveness.Data, ReadOnly(NewField(snapshotValidStages, "valid_stages", Plain("uint32")).Many()))
	s.Tables = append(s.Tables, trigger, of.data(base), liveness)
}

func (of SnapshotOf) trigger(base string) *Table {
	t := NewTable(base+of.Gress+"_trigger", ID(snapshotTrigger, of.Hash), "SnapshotTrigger", int64(of.Stages))
	t.AddKey(snapshotStartStage, "stage", true, "Exact", Plain("uint32").With(0))
	t.Data = append(t.Data,
		Optional(NewField(snapshotEnable, "enable", Plain("bool").With(false))),
		ReadOnly(NewField(snapshotTriggerState, "trigger_state", OneOf("PASSIVE", "ARMED", "FULL")).Many()),
	)
	for _, f := range of.Fields {
		t.Data = append(t.Data,
			Optional(NewField(f.ID, "trig."+f.Name, Bytes(f.Width))),
			Optional(NewField(f.ID+0x8000, "trig."+f.Name+"_mask", Bytes(f.Width))),
		)
	}
	return t
}

func (of SnapshotOf) data(base string) *Table {
	t := NewTable(base+of.Gress+"_data", ID(snapshotData, of.Hash), "SnapshotData", int64(of.Stages))
	t.AddKey(snapshotStartStage, "stage", true, "Exact", Plain("uint32").With(0))
	add := func(id uint32, name string, typ *Type) *Field {
		f := NewField(id, name, typ)
		t.Data = append(t.Data, ReadOnly(f))
		return f
	}
	add(snapshotPrevStage, "prev_stage_trigger", Plain("bool").With(false))
	add(snapshotTimerTrigger, "timer_trigger", Plain("bool").With(false))
	add(snapshotLocalStage, "local_stage_trigger", Plain("bool").With(false))
	add(snapshotNextTable, "next_table_name", Plain("string"))
	add(snapshotTableInfo, "table_info", nil).Many().Container = []*Data{
		ReadOnly(NewField(snapshotTableName, "table_name", Plain("string"))),
		ReadOnly(NewField(snapshotHitHandle, "match_hit_handle", Plain("uint32"))),
		ReadOnly(NewField(snapshotTableHit, "table_hit", Plain("bool"))),
		ReadOnly(NewField(snapshotInhibited, "table_inhibited", Plain("bool"))),
		ReadOnly(NewField(snapshotExecuted, "table_executed", Plain("bool"))),
	}
	if of.Second {
		add(snapshotEnabledNext, "enabled_next_tables", Plain("string")).Many()
		add(snapshotGlobalExecute, "global_execute_tables", Plain("string")).Many()
		add(snapshotEnabledGlobal, "enabled_global_execute_tables", Plain("string")).Many()
		add(snapshotLongBranch, "long_branch_tables", Plain("string")).Many()
		add(snapshotEnabledLong, "enabled_long_branch_tables", Plain("string")).Many()
		add(snapshotDeparserError, "deparser_error", Plain("bool"))
		add(snapshotMeterInfo, "meter_alu_info", nil).Many().Container = []*Data{
			ReadOnly(NewField(snapshotMeterTable, "table_name", Plain("string"))),
			ReadOnly(NewField(snapshotMeterOperation, "meter_alu_operation_type", Plain("string"))),
		}
	}
	for _, f := range of.Fields {
		add(f.ID, f.Name, Bytes(f.Width))
	}
	return t
}
