// Renders a chart the way Helm does, where there is no helm: with the same engine (Go's text/template and the
// functions of sprig, both of Debian), the functions that Helm adds, values merged, and numbers as JSON has them.
//
//	render CHART RELEASE NAMESPACE [VALUES ...]
//
// It prints what `helm template` would, and then NOTES.txt. What it lacks: subcharts, lookup, hooks, .Files.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// A number is a float64 afterwards, as Helm's are, which shows in how large ones are printed.
func readYaml(path string) map[string]interface{} {
	text, err := os.ReadFile(path)
	check(err)
	var found map[string]interface{}
	check(yaml.Unmarshal(text, &found))
	asJson, err := json.Marshal(found)
	check(err)
	var values map[string]interface{}
	check(json.Unmarshal(asJson, &values))
	return values
}

func merge(into, from map[string]interface{}) {
	for key, value := range from {
		inner, isMap := value.(map[string]interface{})
		old, wasMap := into[key].(map[string]interface{})
		if isMap && wasMap {
			merge(old, inner)
		} else {
			into[key] = value
		}
	}
}

func toYaml(value interface{}) (string, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func main() {
	chart, release, namespace := os.Args[1], os.Args[2], os.Args[3]
	values := readYaml(filepath.Join(chart, "values.yaml"))
	for _, path := range os.Args[4:] {
		merge(values, readYaml(path))
	}
	about := map[string]interface{}{}
	for key, value := range readYaml(filepath.Join(chart, "Chart.yaml")) {
		about[strings.ToUpper(key[:1])+key[1:]] = value
	}

	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = toYaml
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	all.Funcs(functions)

	base := about["Name"].(string) + "/templates"
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	sort.Slice(paths, func(a, b int) bool { // NOTES.txt is the last, as after an installation
		return strings.HasSuffix(paths[b], ".txt") || !strings.HasSuffix(paths[a], ".txt") && paths[a] < paths[b]
	})
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(err)
		_, err = all.New(base + "/" + filepath.Base(path)).Parse(string(text))
		check(err)
	}
	for _, path := range paths {
		name := base + "/" + filepath.Base(path)
		if strings.HasPrefix(filepath.Base(path), "_") {
			continue
		}
		var text strings.Builder
		check(all.ExecuteTemplate(&text, name, map[string]interface{}{
			"Values":   values,
			"Chart":    about,
			"Release":  map[string]interface{}{"Name": release, "Namespace": namespace, "Service": "Helm"},
			"Template": map[string]interface{}{"Name": name, "BasePath": base},
		}))
		if strings.HasSuffix(path, ".txt") {
			fmt.Println("\nNOTES:")
		}
		if out := strings.ReplaceAll(text.String(), "<no value>", ""); strings.TrimSpace(out) != "" {
			fmt.Println(strings.Trim(out, "\n"))
		}
	}
}
