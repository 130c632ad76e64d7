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
	hash              = 0x8f
	PortMetadata      = 0x90
	snapshot          = 0x91
	snapshotTrigger   = 0x92
	snapshotData      = 0x93
	snapshotLiveness  = 0x94
	HashConfigure     = 0x95
	HashCompute       = 0x96
	hashAlgorithm     = 0x97
	parserChoices     = 0x98
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
	meterPIRKbps
	meterCBSKbits
	meterPBSKbits
	MeterCIRPps
	meterPIRPps
	meterCBSPkts
	meterPBSPkts
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
	GroupAsked    // the group that SelectorGetMember is asked about
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
	hashRotate
	hashSeed
	hashMSB
	hashExtend
	HashPredefined
	HashUserDefined
	HashValue
	hashStartBit
	hashLength
	hashOrder
	snapshotStartStage
	snapshotEndStage
	snapshotEnable
	snapshotTriggerState
	snapshotTimerEnable
	snapshotTimerTrigger
	snapshotTimerValue
	_
	_
	snapshotTableInfo
	snapshotMeterInfo
	_
	snapshotPrevStage
	snapshotIngressMode
	snapshotLocalStage
	_
	snapshotNextTable
	snapshotEnabledNext
	snapshotGlobalExecute
	snapshotEnabledGlobal
	snapshotLongBranch
	snapshotEnabledLong
	snapshotDeparserError
	_
	snapshotTableName
	snapshotMeterTable
	snapshotMeterOperation
	snapshotHitHandle
	snapshotTableHit
	snapshotInhibited
	snapshotExecuted
	snapshotLivenessField
	snapshotValidStages
	snapshotThread
	snapshotIngressCapture
	snapshotEgressCapture
	snapshotGhostCapture
	parserInstance
	parserName
	DebugTableName
	DebugType
	DebugValue
)

// ID returns the number of a table: its kind in the first byte, then 24 bits of a
// hash.
func ID(kind, hash uint32) uint32 { return kind<<24 | hash&0xffffff }
