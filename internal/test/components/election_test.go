// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestManagersElect: in every installation, a rollout never lets two managers act at the same time.
// Either they elect a leader, or the first one ends before the second one starts.
func TestManagersElect(t *testing.T) {
	for name, objects := range everyInstallation(t) {
		t.Run(name, func(t *testing.T) {
			var manager appsv1.Deployment
			objects.read(t, "Deployment conversion-operator", &manager)
			arguments := slices.DeleteFunc(manager.Spec.Template.Spec.Containers[0].Args, func(argument string) bool {
				return !strings.HasPrefix(argument, "--leader-elect")
			})
			switch strings.Join(arguments, " ") {
			case "", "--leader-elect": // the default
			case "--leader-elect=false":
				if manager.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *manager.Spec.Replicas > 1 {
					t.Errorf("%d managers, which do not elect a leader, are replaced by %q: two act at once", *manager.Spec.Replicas, manager.Spec.Strategy.Type)
				}
			default:
				t.Errorf("it is not clear whether managers with %q elect a leader", arguments)
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
		installations["component "+component] = build(t, with(component)...)
	}
	for _, overlay := range namesIn(t, "overlays") {
		if overlay != "olm" {
			installations["overlay "+overlay] = render(t, filepath.Join(config, "overlays", overlay))
		}
	}
	return installations
}

// with returns a component, after those that it needs.
func with(component string) []string {
	if component == "metrics-certificate" {
		return []string{"cert-manager", "prometheus", component}
	}
	return []string{component}
}
