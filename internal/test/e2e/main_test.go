//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/conversion-operator/conversion-operator/internal/dev/localcluster"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/rbac"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// system is the operator's namespace, and manager its Deployment there.
const (
	system  = "conversion-system"
	manager = "deployment/conversion-operator"
)

// The cluster and its clients.
var (
	teller  *scenarios.Teller
	fleet   *scenarios.Fleet
	cluster client.WithWatch
)

// leftOut are pods of managers whose rights were deleted before they ended. The check of rights ignores
// their requests.
var leftOut = map[string]bool{}

// TestMain installs the operator once, as a user would.
func TestMain(m *testing.M) {
	localcluster.PlayRole()
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests need a cluster, see make test-e2e:", err)
		os.Exit(1)
	}
	if err := scenarios.Install(context.Background(), teller, scenarios.PropagationDelay); err != nil {
		fmt.Fprintln(os.Stderr, "the operator could not be installed:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := checkRequests(); err != nil {
		fmt.Fprintln(os.Stderr, "the requests of the operator are not those that it may make:\n"+err.Error())
		code = 1
	}
	os.Exit(code)
}

func connect() error {
	root, err := scenarios.Root()
	if err != nil {
		return err
	}
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return err
	}
	kubeconfig.QPS = -1
	if cluster, err = client.NewWithWatch(kubeconfig, client.Options{Scheme: scheme.New()}); err != nil {
		return err
	}
	teller = scenarios.NewTeller(os.Stdout, root)
	fleet, err = scenarios.NewFleet(kubeconfig)
	return err
}

// checkRequests reads the audit log of the API server, which only the local cluster has: one manager
// acted at any time, no request was forbidden or refused by admission, and every right was used.
func checkRequests() error {
	name := os.Getenv("AUDIT_LOG")
	if name == "" {
		fmt.Fprintln(os.Stderr, "AUDIT_LOG is not set: rights and leaders are not checked on this cluster")
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
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	log, err := rbac.ReadLog(file, system, leftOut)
	if err != nil {
		return err
	}
	var wrong []error
	if len(leading.Leaders) == 0 || leading.Leaders[0] == "" {
		wrong = append(wrong, fmt.Errorf("the audit log does not say who led: %q", leading.Leaders))
	}
	for _, write := range leading.WithoutLease {
		wrong = append(wrong, fmt.Errorf("a manager writes that does not lead: %s", write))
	}
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
