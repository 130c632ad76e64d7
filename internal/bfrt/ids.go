package bfrt

// The first byte of the numbers of Tofino's tables. Match tables and actions have the
// same numbers as in P4Runtime.
const (
	ActionProfile     = 0x81
	ActionSelector    = 0x82
	Counter           = 0x83
	Meter             = 0x85
	Wred              = 0x87
	Lpf               = 0x89
	Register          = 0x8b
	RegisterParam     = 0x8d
	Digest            = 0x8e
	Hash              = 0x8f
	PortMetadata      = 0x90
	Snapshot          = 0x91
	SnapshotTrigger   = 0x92
	SnapshotData      = 0x93
	SnapshotLiveness  = 0x94
	HashConfigure     = 0x95
	HashCompute       = 0x96
	HashAlgorithm     = 0x97
	ParserChoices     = 0x98
	DebugCounter      = 0x99
	SelectorGetMember = 0x9a
	ValueSet          = 0xfe
)

// The numbers of the fields that the SDE defines. They start after the range for
// fields of programs.
const (
	_ = 1<<16 + iota
	MatchPriority
	_
	ActionMemberID
	SelectorGroupID
	_
	_
	EntryTTL
	EntryHitState
	MeterCIRKbps
	MeterPIRKbps
	MeterCBSKbits
	MeterPBSKbits
	MeterCIRPps
	MeterPIRPps
	MeterCBSPkts
	MeterPBSPkts
	CounterBytes
	CounterPkts
	MeterIndex
	CounterIndex
	RegisterIndex
	_
	_
	LpfIndex
	WredIndex
	MemberOfGroup // the member that SelectorGetMember returns
	GroupAsked    // the group of that member
	ActionMemberStatus
	MaxGroupSize
	AdtOffset
	LpfType
	LpfGain
	LpfDecay
	LpfScale
	WredTime
	WredMin
	WredMax
	WredProbability
	PortMetadataPort
	PortMetadataDefault
	HashRotate
	HashSeed
	HashMSB
	HashExtend
	HashPredefined
	HashUserDefined
	HashValue
	HashStartBit
	HashLength
	HashOrder
	SnapshotStartStage
	SnapshotEndStage
	SnapshotEnable
	SnapshotTriggerState
	SnapshotTimerEnable
	SnapshotTimerTrigger
	SnapshotTimerValue
	_
	_
	SnapshotTableInfo
	SnapshotMeterInfo
	_
	SnapshotPrevStage
	SnapshotIngressMode
	SnapshotLocalStage
	_
	SnapshotNextTable
	SnapshotEnabledNext
	SnapshotGlobalExecute
	SnapshotEnabledGlobal
	SnapshotLongBranch
	SnapshotEnabledLong
	SnapshotDeparserError
	_
	SnapshotTableName
	SnapshotMeterTable
	SnapshotMeterOperation
	SnapshotHitHandle
	SnapshotTableHit
	SnapshotInhibited
	SnapshotExecuted
	SnapshotLivenessField
	SnapshotValidStages
	SnapshotThread
	SnapshotIngressCapture
	SnapshotEgressCapture
	SnapshotGhostCapture
	ParserInstance
	ParserName
	DebugTableName
	DebugType
	DebugValue
)

// ID returns the number of a table: its kind in the first byte, then 24 bits of a
// hash.
func ID(kind, hash uint32) uint32 { return kind<<24 | hash&0xffffff }
