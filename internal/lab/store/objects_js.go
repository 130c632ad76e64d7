package store

import (
	"errors"
	"net/url"
)

// errNoObjects is the error of builds without object stores.
var errNoObjects = errors.New("object stores need the command p4lb")

func openS3(*url.URL) (bucket, error)    { return nil, errNoObjects }
func openGCS(*url.URL) (bucket, error)   { return nil, errNoObjects }
func openAzure(*url.URL) (bucket, error) { return nil, errNoObjects }
