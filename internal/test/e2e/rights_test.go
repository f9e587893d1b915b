//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/conversion-operator/conversion-operator/internal/test/rbac"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
)

// checkLeading compares the writes of managers with the holder of the lease: one manager acted at
// any time during all stories, including rollouts between versions.
func checkLeading() error {
	name := os.Getenv("AUDIT_LOG")
	if name == "" {
		fmt.Fprintln(os.Stderr, "AUDIT_LOG is not set: it is not checked on this cluster that one manager acts at a time")
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	leading, err := rbac.ReadLeading(file, system)
	if err != nil {
		return err
	}
	if len(leading.Leaders) == 0 || leading.Leaders[0] == "" {
		return fmt.Errorf("the audit log does not say who led: %q", leading.Leaders)
	}
	var wrong []error
	for _, write := range leading.WithoutLease {
		wrong = append(wrong, fmt.Errorf("a manager writes that does not lead: %s", write))
	}
	return errors.Join(wrong...)
}

// checkRights compares the rights of the operator's accounts with their requests in all stories: no
// request was forbidden or refused by admission, and every right was used. AUDIT_LOG is the audit log of the API server,
// which only the local cluster has.
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
	log, err := rbac.ReadLog(file, system, leftOut.names())
	if err != nil {
		return err
	}
	var wrong []error
	for _, request := range log.Forbidden {
		wrong = append(wrong, fmt.Errorf("a right is missing: %s", request))
	}
	for _, request := range log.Refused {
		wrong = append(wrong, fmt.Errorf("admission refuses what a story needs: %s", request))
	}
	if flag.Lookup("test.run").Value.String() != "" || !release.Playing() {
		return errors.Join(wrong...) // not every story was played: make test-release plays all
	}
	roles, err := rbac.Reasons()
	if err != nil {
		return err
	}
	for _, right := range log.Unused(roles) {
		wrong = append(wrong, fmt.Errorf("a right is granted that no story used: %s: "+
			"take it away, or name the test that needs it in internal/test/rbac/reasons.yaml", right))
	}
	return errors.Join(wrong...)
}
