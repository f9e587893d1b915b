// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

func (p *Play) showPolicy(ctx context.Context) error {
	_, err := p.Show(ctx, "kubectl", "get", "conversionpolicies", p.CRD())
	return err
}

func (p *Play) showConditions(ctx context.Context) error {
	_, err := p.Show(ctx, "kubectl", "get", p.policy(), "-o",
		`jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`)
	return err
}

// showStored prints the content of etcd, and checks that all objects are stored at one version.
func (p *Play) showStored(ctx context.Context, version string) error {
	stored, err := ReadStored(ctx, p.Group, "crontabs")
	if err != nil {
		return err
	}
	if stored == nil {
		p.Say("The bytes in etcd are not shown: %s is not set.", EndpointVariable)
		return nil
	}
	p.Say("What etcd holds under /registry/%s/crontabs/: %s; for example", p.Group, stored)
	fmt.Fprintln(p.Out, "  "+WithoutManagedFields(stored.Bytes[Namespace+"/"+p.Name]))
	if !stored.Only(p.Group + "/" + version) {
		return fmt.Errorf("etcd holds %s, want all at %s", stored, version)
	}
	p.Claim("every object is stored at %s: %s", version, stored)
	return nil
}

// showStoredVersions prints status.storedVersions, and compares it with want, if any.
func (p *Play) showStoredVersions(ctx context.Context, when string, want ...string) error {
	p.Say("status.storedVersions %s:", when)
	answer, err := p.Show(ctx, "kubectl", "get", "crd", p.CRD(), "-o", `jsonpath={.status.storedVersions}{"\n"}`)
	if err != nil || len(want) == 0 {
		return err
	}
	if got := strings.TrimSpace(answer); got != `["`+strings.Join(want, `","`)+`"]` {
		return fmt.Errorf("status.storedVersions is %s, want %v", got, want)
	}
	p.Claim("status.storedVersions lists %s only", strings.Join(want, ", "))
	return nil
}

// followMigration prints the progress until the migration succeeds.
func (p *Play) followMigration(ctx context.Context) error {
	const columns = "custom-columns=NAME:.metadata.name,STATE:.status.migration.state,VERSION:.status.migration.storageVersion," +
		"MIGRATED:.status.migration.progress,STORED:.status.crd.storedVersions"
	words := []string{"kubectl", "get", p.policy(), "-o", columns}
	fmt.Fprintf(p.Out, "$ %s --watch\n", quote(words))
	deadline := time.Now().Add(2 * time.Minute)
	var told []string
	for time.Now().Before(deadline) {
		answer, err := p.Run(ctx, append(words, "--no-headers")...)
		if err != nil {
			return err
		}
		line := strings.Join(strings.Fields(answer), "  ")
		if !slices.Contains(told, line) {
			told = append(told, line)
			fmt.Fprintln(p.Out, "  "+line)
		}
		if strings.Contains(line, "Succeeded  "+p.New) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollPause):
		}
	}
	return fmt.Errorf("the migration did not succeed in time; last seen: %v", told)
}
