package inspect

import (
	"errors"
	"io"
)

// errNoParquet is the error of builds without Parquet.
var errNoParquet = errors.New("format parquet needs the command p4lb: want csv")

func newParquetWriter(io.Writer) (parquetWriter, error) { return nil, errNoParquet }

func newParquetRecorder(io.Writer) (Recorder, error) { return nil, errNoParquet }
