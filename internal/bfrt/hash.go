package bfrt

// predefined lists the hash algorithms that the SDE knows by name.
var predefined = []string{
	"IDENTITY", "RANDOM", "XOR",
	"CRC_8", "CRC_8_DARC", "CRC_8_I_CODE", "CRC_8_ITU", "CRC_8_MAXIM", "CRC_8_ROHC", "CRC_8_WCDMA",
	"CRC_16", "CRC_16_BYPASS", "CRC_16_DDS_110", "CRC_16_DECT", "CRC_16_DECT_R", "CRC_16_DECT_X", "CRC_16_DNP", "CRC_16_EN_13757",
	"CRC_16_GENIBUS", "CRC_16_MAXIM", "CRC_16_MCRF4XX", "CRC_16_RIELLO", "CRC_16_T10_DIF", "CRC_16_TELEDISK", "CRC_16_USB",
	"X_25", "XMODEM", "MODBUS", "KERMIT", "CRC_CCITT_FALSE", "CRC_AUG_CCITT",
	"CRC_32", "CRC_32_BZIP2", "CRC_32C", "CRC_32D", "CRC_32_MPEG", "POSIX", "CRC_32Q", "JAMCRC", "XFER",
	"CRC_64", "CRC_64_GO_ISO", "CRC_64_WE", "CRC_64_JONES",
}

// HashAlgorithmOf returns the table that changes the algorithm of a hash.
func HashAlgorithmOf(name string, hash uint32) *Table {
	t := NewTable(name+".algorithm", ID(hashAlgorithm, hash), "DynHashAlgorithm", 1)
	t.Data = append(t.Data,
		Optional(NewField(hashRotate, "rotate", Plain("uint32").With(0))),
		Optional(NewField(hashSeed, "seed", Plain("uint32").With(0))),
		Optional(NewField(hashMSB, "msb", Plain("bool").With(false))),
		Optional(NewField(hashExtend, "extend", Plain("bool").With(false))),
	)
	t.ActionSpecs = &[]*ActionSpec{
		{ID: HashPredefined, Name: "pre_defined", Scope: "TableAndDefault", Annotations: []Annotation{}, Data: []*Field{
			Param(1, "algorithm_name", false, OneOf(predefined...).With("RANDOM")),
		}},
		{ID: HashUserDefined, Name: "user_defined", Scope: "TableAndDefault", Annotations: []Annotation{}, Data: []*Field{
			Param(1, "reverse", false, Plain("bool").With(false)),
			Param(2, "polynomial", true, Plain("uint64")),
			Param(3, "init", false, Plain("uint64").With(0)),
			Param(4, "final_xor", false, Plain("uint64").With(0)),
			Param(5, "hash_bit_width", false, Plain("uint64")),
		}},
	}
	t.Needs(ID(HashConfigure, hash))
	return t
}

// HashConfigured returns the data for one input field in the table that changes the
// order of a hash's input.
func HashConfigured(id uint32, name string, width int, notes ...Annotation) *Data {
	f := NewField(id, name, nil, notes...).Many()
	f.Container = []*Data{
		Optional(NewField(hashStartBit, "start_bit", Plain("uint64").With(0))),
		Optional(NewField(hashLength, "length", Plain("uint64").With(width))),
		Mandatory(NewField(hashOrder, "order", Plain("uint64"))),
	}
	return Optional(f)
}
