// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestManagersElect: in every installation, a rollout never lets two managers act at the same time.
// Either they elect a leader, or the first one ends before the second one starts.
func TestManagersElect(t *testing.T) {
	for name, objects := range everyInstallation(t) {
		t.Run(name, func(t *testing.T) {
			var manager appsv1.Deployment
			objects.read(t, "Deployment conversion-operator", &manager)
			if err := oneActs(&manager); err != nil {
				t.Error(err)
			}
		})
	}
}

// everyInstallation returns config/default alone, with each component, and each overlay with a
// manager. The overlay for the Operator Lifecycle Manager has none: the bundle, which is made from
// config/default, has it.
func everyInstallation(t *testing.T) map[string]built {
	t.Helper()
	installations := map[string]built{"default": build(t)}
	for _, component := range namesIn(t, "components") {
		with := []string{component}
		if component == "metrics-certificate" {
			with = []string{"cert-manager", "prometheus", component}
		}
		installations["component "+component] = build(t, with...)
	}
	for _, overlay := range namesIn(t, "overlays") {
		if overlay != "olm" {
			installations["overlay "+overlay] = render(t, filepath.Join(config, "overlays", overlay))
		}
	}
	return installations
}

func namesIn(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(config, folder))
	expect.NoError(t, err)
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// oneActs returns an error if two managers of a Deployment can act at the same time.
func oneActs(manager *appsv1.Deployment) error {
	elects := true // the default of the flag
	for _, argument := range manager.Spec.Template.Spec.Containers[0].Args {
		value, found := strings.CutPrefix(argument, "--leader-elect")
		if !found {
			continue
		}
		var err error
		if elects, err = strconv.ParseBool(strings.TrimPrefix(value, "=")); err != nil {
			elects = value == ""
		}
	}
	if elects || manager.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && *manager.Spec.Replicas <= 1 {
		return nil
	}
	return fmt.Errorf("%d managers with %v, which do not elect a leader, are replaced by %q: two act at once",
		*manager.Spec.Replicas, manager.Spec.Template.Spec.Containers[0].Args, manager.Spec.Strategy.Type)
}

// TestOneActs checks oneActs on Deployments with a known result.
func TestOneActs(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		strategy  appsv1.DeploymentStrategyType
		replicas  int32
		acts      bool
	}{
		"by default":                    {nil, "", 2, true},
		"asked to":                      {[]string{"manager", "--leader-elect"}, "", 2, true},
		"asked to, in words":            {[]string{"manager", "--leader-elect=true"}, "RollingUpdate", 1, true},
		"asked not to":                  {[]string{"manager", "--leader-elect=false"}, "RollingUpdate", 1, false},
		"asked not to in the end":       {[]string{"manager", "--leader-elect", "--leader-elect=false"}, "", 1, false},
		"one ends before the next":      {[]string{"manager", "--leader-elect=false"}, "Recreate", 1, true},
		"two end before the next two":   {[]string{"manager", "--leader-elect=false"}, "Recreate", 2, false},
		"a value that no flag can take": {[]string{"manager", "--leader-elect=perhaps"}, "RollingUpdate", 1, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			manager := &appsv1.Deployment{}
			manager.Spec.Replicas, manager.Spec.Strategy.Type = &c.replicas, c.strategy
			manager.Spec.Template.Spec.Containers = []corev1.Container{{Args: c.arguments}}
			if err := oneActs(manager); (err == nil) != c.acts {
				t.Errorf("one acts at a time: %v, want %t", err, c.acts)
			}
		})
	}
}
