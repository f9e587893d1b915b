//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/conversion-operator/conversion-operator/internal/test/rights"
)

// checkRights holds the rights of the operator's accounts against what they asked
// for in all stories together: nothing was forbidden, and nothing is granted that
// nobody used. AUDIT_LOG is where the API server keeps its log; another cluster than
// the local one keeps none for us.
func checkRights() error {
	name := os.Getenv("AUDIT_LOG")
	if name == "" {
		fmt.Fprintln(os.Stderr, "AUDIT_LOG is not set: the rights are not checked on this cluster")
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	log, err := rights.ReadLog(file, system)
	if err != nil {
		return err
	}
	var wrong []error
	for _, request := range log.Forbidden {
		wrong = append(wrong, fmt.Errorf("a right is missing: %s", request))
	}
	if flag.Lookup("test.run").Value.String() != "" {
		return errors.Join(wrong...) // not all stories were told
	}
	roles, err := rights.Reasons()
	if err != nil {
		return err
	}
	for _, right := range log.Unused(roles) {
		wrong = append(wrong, fmt.Errorf("a right is granted that no story used: %s: "+
			"take it away, or name the test that needs it in internal/test/rights/reasons.yaml", right))
	}
	return errors.Join(wrong...)
}
