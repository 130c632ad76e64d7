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
		cfg = NewTable(base+"cfg", ID(Snapshot, of.Hash), "SnapshotCfg", int64(of.Stages))
		cfg.AddKey(SnapshotStartStage, "start_stage", false, "Exact", Plain("uint32").With(0))
		cfg.AddKey(SnapshotEndStage, "end_stage", false, "Exact", Plain("uint32").With(of.Stages-1))
		cfg.Data = append(cfg.Data,
			Optional(NewField(SnapshotTimerEnable, "timer_enable", Plain("bool").With(false))),
			Optional(NewField(SnapshotTimerValue, "timer_value_usecs", Plain("uint32"))),
			Optional(NewField(SnapshotIngressMode, "ingress_trigger_mode", OneOf("INGRESS", "GHOST", "INGRESS_GHOST", "ANY").With("INGRESS"))),
			Mandatory(NewField(SnapshotThread, "thread", OneOf("INGRESS", "EGRESS", "ALL"))),
			ReadOnly(NewField(SnapshotIngressCapture, "ingress_capture", Plain("uint32")).Many()),
			ReadOnly(NewField(SnapshotEgressCapture, "egress_capture", Plain("uint32")).Many()),
			ReadOnly(NewField(SnapshotGhostCapture, "ghost_capture", Plain("uint32")).Many()),
		)
		s.Tables = append(s.Tables, cfg)
	}
	trigger := of.trigger(base)
	cfg.Needs(trigger.ID)
	liveness := NewTable(base+of.Gress+"_liveness", ID(SnapshotLiveness, of.Hash), "SnapshotLiveness", 0)
	liveness.AddKey(SnapshotLivenessField, "field_name", true, "Exact", Plain("string"))
	liveness.Data = append(liveness.Data, ReadOnly(NewField(SnapshotValidStages, "valid_stages", Plain("uint32")).Many()))
	s.Tables = append(s.Tables, trigger, of.data(base), liveness)
}

func (of SnapshotOf) trigger(base string) *Table {
	t := NewTable(base+of.Gress+"_trigger", ID(SnapshotTrigger, of.Hash), "SnapshotTrigger", int64(of.Stages))
	t.AddKey(SnapshotStartStage, "stage", true, "Exact", Plain("uint32").With(0))
	t.Data = append(t.Data,
		Optional(NewField(SnapshotEnable, "enable", Plain("bool").With(false))),
		ReadOnly(NewField(SnapshotTriggerState, "trigger_state", OneOf("PASSIVE", "ARMED", "FULL")).Many()),
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
	t := NewTable(base+of.Gress+"_data", ID(SnapshotData, of.Hash), "SnapshotData", int64(of.Stages))
	t.AddKey(SnapshotStartStage, "stage", true, "Exact", Plain("uint32").With(0))
	add := func(id uint32, name string, typ *Type) *Field {
		f := NewField(id, name, typ)
		t.Data = append(t.Data, ReadOnly(f))
		return f
	}
	add(SnapshotPrevStage, "prev_stage_trigger", Plain("bool").With(false))
	add(SnapshotTimerTrigger, "timer_trigger", Plain("bool").With(false))
	add(SnapshotLocalStage, "local_stage_trigger", Plain("bool").With(false))
	add(SnapshotNextTable, "next_table_name", Plain("string"))
	add(SnapshotTableInfo, "table_info", nil).Many().Container = []*Data{
		ReadOnly(NewField(SnapshotTableName, "table_name", Plain("string"))),
		ReadOnly(NewField(SnapshotHitHandle, "match_hit_handle", Plain("uint32"))),
		ReadOnly(NewField(SnapshotTableHit, "table_hit", Plain("bool"))),
		ReadOnly(NewField(SnapshotInhibited, "table_inhibited", Plain("bool"))),
		ReadOnly(NewField(SnapshotExecuted, "table_executed", Plain("bool"))),
	}
	if of.Second {
		add(SnapshotEnabledNext, "enabled_next_tables", Plain("string")).Many()
		add(SnapshotGlobalExecute, "global_execute_tables", Plain("string")).Many()
		add(SnapshotEnabledGlobal, "enabled_global_execute_tables", Plain("string")).Many()
		add(SnapshotLongBranch, "long_branch_tables", Plain("string")).Many()
		add(SnapshotEnabledLong, "enabled_long_branch_tables", Plain("string")).Many()
		add(SnapshotDeparserError, "deparser_error", Plain("bool"))
		add(SnapshotMeterInfo, "meter_alu_info", nil).Many().Container = []*Data{
			ReadOnly(NewField(SnapshotMeterTable, "table_name", Plain("string"))),
			ReadOnly(NewField(SnapshotMeterOperation, "meter_alu_operation_type", Plain("string"))),
		}
	}
	for _, f := range of.Fields {
		add(f.ID, f.Name, Bytes(f.Width))
	}
	return t
}
