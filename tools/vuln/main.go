// Vuln runs govulncheck on packages: it fails if they call functions with
// known vulnerabilities.
//
//	go run ./tools/vuln ./...
//
// The database is GOVULNDB, or https://vuln.go.dev. If it cannot be reached,
// vuln prints the reason in one line and succeeds, because make check also
// runs on machines without a network.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/vuln/scan"
)

func main() {
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = "https://vuln.go.dev"
	}
	os.Exit(run(database, os.Args[1:], os.Stdout, os.Stderr))
}

// run checks the packages that the arguments of govulncheck name, and returns
// the exit status of govulncheck.
func run(database string, args []string, out, errs io.Writer) int {
	if err := reach(database); err != nil {
		fmt.Fprintf(out, "vulnerabilities not checked: %s: %v\n", database, err)
		return 0
	}
	cmd := scan.Command(context.Background(), append([]string{"-db", database}, args...)...)
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return code.ExitCode()
	}
	fmt.Fprintf(errs, "vuln: %v\n", err)
	return 1
}

// reach reports why a database on the network does not answer. A database in
// a folder (file://) is left to govulncheck.
func reach(database string) error {
	if !strings.HasPrefix(database, "http://") && !strings.HasPrefix(database, "https://") {
		return nil
	}
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(database + "/index/db.json")
	if err != nil {
		return errors.Unwrap(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("index/db.json: %s", answer.Status)
	}
	return nil
}
